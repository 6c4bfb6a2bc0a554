#!/usr/bin/env node
// Asks the original engine's own parser whether it accepts RDRR directories that `doppler convert --compat` wrote.
//
//   mkdir /some/dir && cd /some/dir && npm install --ignore-scripts doppler-gpu@0.5.1
//   node tools/check_compat.mjs /some/dir/node_modules/doppler-gpu MODEL_DIR...
//
// Checked with the package's code: manifest parsing and validation, its tensor map parser, its tokenizer reader, and
// its block tree over every tensor. Checked here: shard sizes and digests, that every tensor lies in its shards and
// has the size its shape and type give, and that every type is one its loader can use.
import {createHash} from 'node:crypto';
import {closeSync, existsSync, openSync, readFileSync, readSync, statSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [packageDir, ...models] = process.argv.slice(2);
if (!packageDir || models.length === 0) {
  console.error('usage: check_compat.mjs PACKAGE_DIR MODEL_DIR...');
  process.exit(2);
}

const load = (path) => import(pathToFileURL(join(resolve(packageDir), path)).href);
const {version} = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8'));
const {parseManifest, parseTensorMap} = await load('src/formats/rdrr/parsing.js');
const {validateManifest} = await load('src/formats/rdrr/validation.js');
// The 0.1.0 release has no block trees.
const merkleFile = 'src/formats/rdrr/merkle.js';
const buildMerkleTree = existsSync(join(packageDir, merkleFile)) ? (await load(merkleFile)).buildMerkleTree : null;
const {getShardsForExpert} = await load('src/formats/rdrr/groups.js');
const {Tokenizer} = await load('src/inference/tokenizer.js');
const say = console.log.bind(console);
console.log = console.info = console.debug = () => {};  // the package tells a lot

const blockOf = {F32: [1, 4], F16: [1, 2], BF16: [1, 2], Q4_K: [256, 144], Q4_K_M: [256, 144], Q6_K: [256, 210]};

function readSpan(directory, shard, offset, size) {
  const bytes = Buffer.alloc(size);
  const file = openSync(join(directory, shard.filename), 'r');
  let at = 0;
  while (at < size) {
    const got = readSync(file, bytes, at, size - at, offset + at);
    if (got === 0) throw new Error(`${shard.filename} ends at ${offset + at}`);
    at += got;
  }
  closeSync(file);
  return bytes;
}

const spansOf = (tensor) => tensor.spans ?? [{shardIndex: tensor.shard, offset: tensor.offset, size: tensor.size}];

function checkShards(directory, manifest, problems) {
  for (const shard of manifest.shards) {
    const path = join(directory, shard.filename);
    if (statSync(path).size !== shard.size) problems.push(`${shard.filename}: size ${statSync(path).size}, not ${shard.size}`);
    if (manifest.hashAlgorithm !== 'sha256') continue;
    const hash = createHash('sha256').update(readSpan(directory, shard, 0, shard.size)).digest('hex');
    if (hash !== shard.hash) problems.push(`${shard.filename}: sha256 ${hash}, not ${shard.hash}`);
  }
}

function checkTensors(manifest, tensors, problems) {
  for (const [name, tensor] of Object.entries(tensors)) {
    // gpt-oss's experts: MXFP4 in two halves.
    const half = tensor.dtype === 'U8' && /\.experts\.\w+_(blocks|scales)$/.test(name);
    const block = half ? [1, 1] : blockOf[tensor.dtype];
    if (!block) {
      problems.push(`${name}: the loader cannot use ${tensor.dtype}`);
      continue;
    }
    const columns = tensor.shape.at(-1);
    const rows = tensor.shape.slice(0, -1).reduce((a, b) => a * b, 1);
    const wanted = rows * Math.ceil(columns / block[0]) * block[1];
    if (wanted !== tensor.size) problems.push(`${name}: ${wanted} bytes wanted, got ${tensor.size}`);
    if (tensor.dtype === 'Q6_K' && columns % 256 !== 0) problems.push(`${name}: Q6_K rows may not be padded`);
    let covered = 0;
    for (const span of spansOf(tensor)) {
      covered += span.size;
      if (span.offset + span.size > manifest.shards[span.shardIndex].size) problems.push(`${name}: leaves its shard`);
    }
    if (covered !== tensor.size) problems.push(`${name}: spans cover ${covered} of ${tensor.size}`);
  }
}

/// Every expert has a group, as the loader asks for it, and the group has shards.
function checkExperts(manifest, problems) {
  for (let layer = 0; manifest.moeConfig && layer < manifest.architecture.numLayers; ++layer)
    for (let expert = 0; expert < manifest.moeConfig.numExperts; ++expert)
      if (getShardsForExpert(layer, expert, manifest).length === 0)
        problems.push(`layer.${layer}.expert.${expert}: no shards`);
}

function checkRoots(directory, manifest, tensors, problems) {
  const tree = buildMerkleTree && manifest.integrityExtensions?.blockMerkle;
  let checked = 0;
  for (const [name, root] of Object.entries(tree ? tree.roots : {})) {
    const bytes = Buffer.concat(spansOf(tensors[name]).map(
        (span) => readSpan(directory, manifest.shards[span.shardIndex], span.offset, span.size)));
    const got = buildMerkleTree(bytes, {blockSize: tree.blockSize}).root;
    if (got !== root) problems.push(`${name}: root ${got}, not ${root}`);
    ++checked;
  }
  return checked;
}

async function tokenIds(directory, manifest, text) {
  const tokenizer = new Tokenizer();
  const loadTokenizerJson = () => readFileSync(join(directory, manifest.tokenizer.file), 'utf8');
  await tokenizer.initialize(manifest, {loadTokenizerJson});
  return Array.from(tokenizer.encode(text));
}

let failed = false;
for (const directory of models) {
  const problems = [];
  let line = '';
  try {
    const text = readFileSync(join(directory, 'manifest.json'), 'utf8');
    const manifest = parseManifest(text);
    const {valid, errors, warnings} = validateManifest(manifest);
    if (!valid) problems.push(...errors);
    const tensors = parseTensorMap(JSON.stringify(manifest.tensors));
    checkShards(directory, manifest, problems);
    checkTensors(manifest, tensors, problems);
    checkExperts(manifest, problems);
    const roots = checkRoots(directory, manifest, tensors, problems);
    const types = {};
    for (const tensor of Object.values(tensors)) types[tensor.dtype] = (types[tensor.dtype] ?? 0) + 1;
    const ids = await tokenIds(directory, manifest, 'The capital of France is');
    line = `${manifest.shards.length} shards, ${Object.entries(types).map(([type, n]) => `${n} ${type}`).join(', ')}, ` +
        `${roots} block trees, ${warnings.length} warnings, token ids [${ids}]`;
    for (const warning of warnings) say(`  warning: ${warning}`);
  } catch (error) {
    problems.push(error.message);
  }
  say(`${problems.length === 0 ? 'ok' : 'FAILED'}  ${directory} (version ${version}): ${line}`);
  for (const problem of problems.slice(0, 20)) say(`  ${problem}`);
  failed ||= problems.length > 0;
}
process.exit(failed ? 1 : 0);

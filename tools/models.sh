#!/usr/bin/env bash
# Pulls the models that the tests use into the cache; those that are there are left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for model in smollm2-135m-instruct gemma-3-270m all-minilm-l6-v2; do
  build/release/doppler pull "$model" >/dev/null
done

#!/bin/sh
# Crawls on a Ray cluster and exports the pages as Parquet: sh examples/crawl_on_ray.sh https://example.org/ FOLDER [options of trapline crawl]
# Needs: pip install "trapline[ray]". CLUSTER is the address of a cluster, or `auto` for the cluster of this machine. Without it, Ray runs
# on this machine for the duration of the crawl. How to start a cluster: docs/how-to/ray-cluster.md and examples/ray-cluster.yaml.
set -e
url=$1 folder=$2
shift 2
trapline crawl "$url" --scope domain --ray "${CLUSTER:-local}" --processes 4 --max-pages 100000 -o "$folder" "$@"
trapline export "$folder" --to parquet pages links

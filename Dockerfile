# An image of the command `trapline` with its compiled core, so that the first crawl starts at once:
#   docker build -t trapline .
#   docker run --rm -it -v "$PWD:/data" --user "$(id -u):$(id -g)" trapline crawl https://example.org/ -o crawl
# Guide: docs/how-to/install.md.

FROM debian:bookworm-slim AS python
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*

# A wheel with kernels that are compiled for a processor that all users of the platform have, and the versions of the lock file.
FROM python AS build
RUN apt-get update && apt-get install --yes --no-install-recommends make
WORKDIR /src
COPY . .
# Compiled kernels are kept for the next build. Their names are hashes of all that they are made of, so none is ever stale.
RUN --mount=type=cache,target=/kernels make .venv/runtime.stamp && .venv/bin/python packaging/wheel.py --cache /kernels
RUN .venv/bin/uv export --quiet --frozen --no-dev --no-emit-project --output-file requirements.txt \
 && .venv/bin/uv venv --quiet --python /usr/bin/python3 /opt/trapline \
 && .venv/bin/uv pip install --quiet --compile-bytecode --python /opt/trapline/bin/python --requirement requirements.txt dist/*.whl

FROM python
COPY --from=build /opt/trapline /opt/trapline
# Any user may run the image, also one without a home.
ENV PATH=/opt/trapline/bin:$PATH TRAPLINE_CACHE=/tmp/trapline
USER 1000:1000
WORKDIR /data
VOLUME /data
ENTRYPOINT ["trapline"]
CMD ["--help"]

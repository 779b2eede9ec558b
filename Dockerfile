# Two images from one build:
#   docker build -t perstack-base .                     with a shell and the usual small tools (busybox)
#   docker build -t perstack-base --target minimal .    the binary alone (scratch): files, todo list; nothing to run
# BUILDER has Go, BASE a shell at /bin/sh; give your own where these cannot be pulled.
ARG BUILDER=golang:1.26
ARG BASE=busybox:stable

FROM ${BUILDER} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/perstack-base ./cmd/perstack-base \
 && mkdir -p /out/workspace /out/root/tmp && chmod 1777 /out/root/tmp

FROM scratch AS minimal
ARG VERSION=devel
LABEL io.modelcontextprotocol.server.name="io.github.perstack-ai/perstack-base" \
      org.opencontainers.image.title="perstack-base" \
      org.opencontainers.image.description="An MCP server with file, search, patch, command and skill tools for one workspace" \
      org.opencontainers.image.source="https://github.com/perstack-ai/perstack-base" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}"
# A directory copied by its own name would lose its mode.
COPY --from=build /out/root/ /
COPY --from=build /out/perstack-base /perstack-base
COPY --from=build --chown=65532:65532 /out/workspace /workspace
USER 65532:65532
WORKDIR /workspace
HEALTHCHECK CMD ["/perstack-base", "healthcheck", "--stdio-ok"]
ENTRYPOINT ["/perstack-base"]
CMD ["serve"]

FROM ${BASE} AS exec
ARG VERSION=devel
LABEL io.modelcontextprotocol.server.name="io.github.perstack-ai/perstack-base" \
      org.opencontainers.image.title="perstack-base" \
      org.opencontainers.image.description="An MCP server with file, search, patch, command and skill tools for one workspace" \
      org.opencontainers.image.source="https://github.com/perstack-ai/perstack-base" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out/perstack-base /usr/local/bin/perstack-base
COPY --from=build --chown=65532:65532 /out/workspace /workspace
USER 65532:65532
WORKDIR /workspace
HEALTHCHECK CMD ["perstack-base", "healthcheck", "--stdio-ok"]
ENTRYPOINT ["perstack-base"]
CMD ["serve"]

# A container with the program, and the CAs that everybody trusts: no shell, no libraries.
#
#   docker build -t seqproxy --build-arg VERSION=$(git describe --tags --always) --build-arg COMMIT=$(git rev-parse HEAD) .
#   docker run --read-only --stop-timeout 45 -v ./seqproxy:/etc/seqproxy:ro -v seqproxy-state:/var/lib/seqproxy -p 4306:4306 -p 127.0.0.1:4307:4307 seqproxy
#
# The directory has seqproxy.toml and the password files, which user 65532 can read. A reload sees no change of a file
# that is mounted by itself. Inside a container clients come from outside: listen = "0.0.0.0:4306", admin.listen =
# "0.0.0.0:4307", and http.listen = "0.0.0.0:4308" for Prometheus.
# A stop may take as long as drain.grace and drain.timeout say, and 10 seconds for numbers that go back.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" -o /out/seqproxy ./cmd/seqproxy
RUN mkdir -m 0700 /out/state

FROM scratch
COPY --from=build /out/seqproxy /usr/bin/seqproxy
# The CAs that tls = "VERIFY_IDENTITY" trusts without a tls_ca_file.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# state_dir = "/var/lib/seqproxy". It must be a volume: what stands in it has to outlive the container.
COPY --from=build --chown=65532:65532 /out/state /var/lib/seqproxy
# From here on rather collect garbage than grow: twice statement_memory, and some for each client.
ENV GOMEMLIMIT=2GiB
USER 65532:65532
VOLUME /var/lib/seqproxy
EXPOSE 4306 4307 4308
STOPSIGNAL SIGTERM
# Whether it lives; a balancer asks /readyz. Where http.listen is another address, give it here.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/bin/seqproxy", "health", "-http", "127.0.0.1:4308"]
ENTRYPOINT ["/usr/bin/seqproxy"]
CMD ["-config", "/etc/seqproxy/seqproxy.toml"]

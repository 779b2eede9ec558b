module github.com/perstack-ai/perstack-base/e2e/registry

go 1.26.0

require (
	github.com/modelcontextprotocol/registry v1.8.7
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
)

require golang.org/x/text v0.42.0 // indirect

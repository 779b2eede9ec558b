// Package tools turns Go functions into MCP tools.
//
// A profile is a folder below this one, a tool is a file in it. To add a tool:
//
//  1. Write its arguments and its result as structs: `json` names a field,
//     `doc` describes it, `default`, `min`, `max`, `minLength`, `maxLength` and
//     `enum` bound it; `type:"number"` lists a whole number so, `also` accepts
//     another name. A pointer, or a default, makes an argument optional.
//  2. Write `var myTool = tools.Define(tools.Info{...}, func(ctx, env, in) (out, error) {...})`
//     in a file named after the tool. At most twenty lines: arguments to an
//     engine, the engine's answer to the result.
//     People see what it does by its View; see [Env.Write] and [ShowChanges] for the
//     one of changes.
//  3. Add it to the list in the folder's profile.go.
//  4. Add a transcript in testdata/transcripts/PROFILE/TOOL.txtar and run
//     `go test ./server -update`, which writes the schema, the README table and
//     the answers of the transcript. Read what it wrote.
//
// [Define] derives the schema, [Env] is all that a tool may touch, [Error] is how
// it fails, and the profile's [Dialect] words results and errors.
package tools

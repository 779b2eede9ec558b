// Package skillsapi serves skills and artifacts to clients without a tool: the MCP
// Skills extension, the resources skill:// and artifact://, and a prompt for each skill.
//
// Start with [API.Answer]. Nothing here renders or runs a skill; a prompt activates
// one, as the user's own act. Lists of resources have views, too, for clients that show them.
package skillsapi

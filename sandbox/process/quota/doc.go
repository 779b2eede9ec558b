// Package quota bounds what the commands of one session use together: memory, processes
// and processors.
//
// Start with [Limits], what a user asks for, and [Rules], those of one server with what
// there is to keep them. Each [Session] has a [Ration]: Begin says what the next command is
// put under, Reasons by which limit one was ended. A control group counts exactly; where
// there is none, somebody looks (quotawatch_linux.go).
package quota

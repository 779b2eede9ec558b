// Package environ makes the environment of commands: which of the host's variables
// they get and which look secret, what tells tools of the cache, the network and the
// workspace's repository, and where programs are found.
//
// Start with [ForCommands], and [ForContainer] where commands run in one.
package environ

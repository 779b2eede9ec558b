package environ

import (
	"os"
	"os/user"
)

// UserName is what env calls the user who runs the server, or the system does.
func UserName(env []string) string {
	for _, key := range []string{"USER", "LOGNAME"} {
		if name, ok := Get(env, key); ok && name != "" {
			return name
		}
	}
	if me, err := user.Current(); err == nil && me.Username != "" {
		return me.Username
	}
	if os.Getuid() == 0 {
		return "root"
	}
	return "user"
}

// userHome is where the system says that the user is at home.
func userHome() string {
	if me, err := user.Current(); err == nil {
		return me.HomeDir
	}
	return ""
}

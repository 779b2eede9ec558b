package environ

import "testing"

// TestScriptsWithoutSecrets: whatever way a shell spells an assignment, its value
// is not in what commands get to read, and the rest is.
func TestScriptsWithoutSecrets(t *testing.T) {
	secret := func(name, value string) bool { return Withheld(name, value, []string{"PASSED_KEY"}) }
	for text, want := range map[string]string{
		"export API_KEY=SECRET PATH=/bin\n":               "export API_KEY= PATH=/bin\n",
		"API_KEY='SECRET SECRET'; A=1":                    "API_KEY=; A=1",
		"API_KEY=\"SECRET \\\" SECRET\" && A=1":           "API_KEY= && A=1",
		"API_KEY=$'SECRET \\' SECRET'\nA=1":               "API_KEY=\nA=1",
		"API_KEY=a'SECRET b'\"c SECRET\"d\nA=1":           "API_KEY=\nA=1",
		"API_KEY=$(echo SECRET | cat)\nA=1":               "API_KEY=\nA=1",
		"API_KEYS=(SECRET SECRET)\nA=1":                   "API_KEYS=\nA=1",
		"API_KEY+=SECRET\nA=1":                            "API_KEY+=\nA=1",
		": ${API_KEY:=SECRET} ${API_KEY:-SECRET} x":       ": ${API_KEY:=} ${API_KEY:-} x",
		"# export API_KEY=SECRET\nA=1":                    "# export API_KEY=\nA=1",
		"API_KEY='-----BEGIN\nSECRET\n-----END'\nA=1":     "API_KEY=\nA=1",
		"API_KEY='SECRET SECRET":                          "API_KEY=",
		"alias x=\"API_KEY=SECRET tool\"\nA=1":            "alias x=\"API_KEY= tool\"\nA=1",
		"alias x=\"A=1 API_KEY=SECRET\"\nB=2":             "alias x=\"A=1 API_KEY=\"\nB=2",
		"# a TOKEN='\nAPI_KEY='SECRET b'\nA=1":            "# a TOKEN=\nAPI_KEY=\nA=1",
		"alias x='A_TOKEN=\"'\nAPI_KEY=\"SECRET b\"\nA=1": "alias x='A_TOKEN='\nAPI_KEY=\nA=1",
		"alias x='GH_TOKEN=SECRET'\nA=1":                  "alias x='GH_TOKEN='\nA=1",
		"export DB=postgres://u:SECRET@h/d A=1":           "export DB= A=1",
		"curl https://u:SECRET@h/d":                       "curl https://u@h/d",
		"don't\nexport API_KEY=\"SECRET SECRET\"\nA=1":    "don't\nexport API_KEY=\nA=1",
		"PASSED_KEY=kept\nMONKEY=kept $API_KEY=kept":      "PASSED_KEY=kept\nMONKEY=kept $API_KEY=kept",
		"if [ -z \"$PS1\" ]; then return; fi\n":           "if [ -z \"$PS1\" ]; then return; fi\n",
		"":                                                "",
		"KEY":                                             "KEY",
		"KEY=":                                            "KEY=",
	} {
		if got := string(WithoutSecrets([]byte(text), secret)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// TestTokensInValues: what is a secret by its form is one under any name.
func TestTokensInValues(t *testing.T) {
	for _, value := range []string{
		"ghp_SECRETSECRETSECRET12", "AUTHORIZATION: basic U0VDUkVU", "'http.extraheader=Authorization: Basic x'",
		"eyJhbGciOiJI.eyJzdWIiOiIx.sig", "-----BEGIN RSA PRIVATE KEY-----\nx", "https://hooks.slack.com/services/T0/B0/x",
		"Server=x;User=sa;Password=SECRET;", "jdbc:mysql://h/db?user=u&password=SECRET",
	} {
		if !looksSecret("CONN", value) {
			t.Errorf("not withheld: %s", value)
		}
	}
	for _, value := range []string{"https://proxy.golang.org,direct", "/usr/share/sk-fonts", "a=b", "sk-SK.UTF-8", "PWD=", "postgres://u@h/db",
		"/gnu/store/x-glibc-utf8-locales-2.35/lib/locale", "/opt/sk-learn-contrib-tools/bin", "https://pypi-mirror-internal-corp/simple"} {
		if looksSecret("CONN", value) {
			t.Errorf("withheld: %s", value)
		}
	}
	if looksSecret("PATH", "/x/ghp_SECRETSECRETSECRET12") {
		t.Error("PATH is withheld: no program would be found")
	}
	for _, name := range []string{"SMTP_PW", "DB_PSWD", "CI_JOB_JWT"} {
		if !looksSecret(name, "x") {
			t.Errorf("not withheld: %s", name)
		}
	}
}

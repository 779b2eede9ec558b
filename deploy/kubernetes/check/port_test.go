package check

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// portOf is where the server of a pod listens.
func portOf(t *testing.T, spec *corev1.PodSpec) intstr.IntOrString {
	t.Helper()
	for _, arg := range spec.Containers[0].Args {
		if address, ok := strings.CutPrefix(arg, "--listen="); ok {
			port, err := strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
			if err != nil {
				t.Fatal(err)
			}
			return intstr.FromInt(port)
		}
	}
	t.Fatal("the server does not say where it listens")
	panic("not reached")
}

// Package check holds the manifests of deploy/kubernetes to the types that Kubernetes and agent-sandbox publish.
// It is a module of its own, so that perstack-base depends on neither.
package check

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	sandboxv1beta1 "sigs.k8s.io/agent-sandbox/api/v1beta1"
	extensionsv1beta1 "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomizations are the directories that users apply, and the kinds that come of each.
var kustomizations = map[string][]string{
	"base":               {"Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Service"},
	"overlays/project-a": {"Deployment", "Namespace", "NetworkPolicy", "PersistentVolumeClaim", "Service"},
	"agent-sandbox":      {"NetworkPolicy", "Sandbox", "SandboxClaim", "SandboxTemplate", "SandboxWarmPool"},
}

// strict decodes what the published types have, and refuses every other field.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, sandboxv1beta1.AddToScheme, extensionsv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// A resource is one object of a manifest, and where it stood.
type resource struct {
	runtime.Object
	kind  schema.GroupVersionKind
	where string
}

// build runs kustomize on a directory.
func build(t *testing.T, dir string) []resource {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..", dir))
	if err != nil {
		t.Fatalf("kustomize build %s: %v", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	var all []resource
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		object, kind, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s, document %d: %v\n%s", dir, i+1, err, document)
		}
		all = append(all, resource{object, *kind, dir + "/" + kind.Kind})
	}
	return all
}

// find returns the one object of a type.
func find[T runtime.Object](t *testing.T, all []resource) T {
	t.Helper()
	for _, r := range all {
		if object, ok := r.Object.(T); ok {
			return object
		}
	}
	t.Fatalf("there is no %T", *new(T))
	panic("not reached")
}

// podOf is the pod that a resource makes.
func podOf(r resource) (spec *corev1.PodSpec, labels map[string]string, ok bool) {
	switch o := r.Object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, o.Spec.Template.Labels, true
	case *sandboxv1beta1.Sandbox:
		return &o.Spec.PodTemplate.Spec, o.Spec.PodTemplate.ObjectMeta.Labels, true
	case *extensionsv1beta1.SandboxTemplate:
		return &o.Spec.PodTemplate.Spec, o.Spec.PodTemplate.ObjectMeta.Labels, true
	}
	return nil, nil, false
}

// TestManifestsDecode: every kustomization builds, and everything in it is what the published types say.
func TestManifestsDecode(t *testing.T) {
	for dir, want := range kustomizations {
		var kinds []string
		for _, r := range build(t, dir) {
			kinds = append(kinds, r.kind.Kind)
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, want) {
			t.Errorf("%s has %v, not %v", dir, kinds, want)
		}
	}
}

// TestUnknownFieldsAreRefused: the decoder finds a field that is spelled wrong.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, manifest := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selectors: {a: b}}\n",
		"apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: a}\nspec: {podTemplate: {spec: {container: []}}}\n",
		"apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: SandboxClaim\nmetadata: {name: a}\nspec: {sandboxTemplateRef: {name: a}}\n",
	} {
		if _, _, err := strict.Decode([]byte(manifest), nil, nil); !runtime.IsStrictDecodingError(err) {
			t.Errorf("%s: %v", manifest, err)
		}
	}
}

// TestEveryManifestIsApplied: no file lies beside a kustomization that does not name it.
func TestEveryManifestIsApplied(t *testing.T) {
	for dir := range kustomizations {
		fsys := filesys.MakeFsOnDisk()
		text, err := fsys.ReadFile(filepath.Join("..", dir, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var names struct{ Resources, Configurations []string }
		if err := yaml.Unmarshal(text, &names); err != nil {
			t.Fatal(err)
		}
		files, err := fsys.Glob(filepath.Join("..", dir, "*.yaml"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if name != "kustomization.yaml" && !slices.Contains(append(names.Resources, names.Configurations...), name) {
				t.Errorf("%s is in no list of %s/kustomization.yaml", name, dir)
			}
		}
	}
}

// TestPodsAreRestricted: each pod passes Pod Security's level restricted, and gives what it runs no more than it needs.
func TestPodsAreRestricted(t *testing.T) {
	pods := 0
	for dir := range kustomizations {
		for _, r := range build(t, dir) {
			spec, _, ok := podOf(r)
			if !ok {
				continue
			}
			pods++
			for _, complaint := range unrestricted(spec) {
				t.Errorf("%s: %s", r.where, complaint)
			}
		}
	}
	if pods != 4 {
		t.Errorf("%d pods were looked at", pods)
	}
}

// unrestricted says in what a pod permits too much.
func unrestricted(spec *corev1.PodSpec) (complaints []string) {
	must := func(ok bool, what string) {
		if !ok {
			complaints = append(complaints, what)
		}
	}
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	must(is(spec.AutomountServiceAccountToken, false), "a token of the cluster is mounted")
	must(!spec.HostNetwork && !spec.HostPID && !spec.HostIPC, "a namespace of the host is used")
	pod := spec.SecurityContext
	must(pod != nil && is(pod.RunAsNonRoot, true) && pod.RunAsUser != nil && *pod.RunAsUser != 0, "it may run as root")
	must(pod != nil && pod.SeccompProfile != nil && pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "it runs without the runtime's seccomp profile")
	for _, v := range spec.Volumes {
		must(v.HostPath == nil, "volume "+v.Name+" is of the host")
		must(v.EmptyDir == nil || v.EmptyDir.SizeLimit != nil, "volume "+v.Name+" has no limit")
	}
	must(len(spec.Containers) == 1 && len(spec.InitContainers) == 0, "it has other containers")
	for _, c := range spec.Containers {
		s := c.SecurityContext
		must(s != nil && is(s.AllowPrivilegeEscalation, false), c.Name+" may gain privileges")
		must(s != nil && is(s.ReadOnlyRootFilesystem, true), c.Name+" can write its image")
		must(s != nil && s.Capabilities != nil && slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) && s.Capabilities.Add == nil, c.Name+" keeps capabilities")
		must(s != nil && (s.Privileged == nil || !*s.Privileged) && s.SeccompProfile == nil && s.RunAsUser == nil, c.Name+" loosens what the pod sets")
		must(!c.Resources.Limits.Memory().IsZero() && !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero(), c.Name+" has no limits")
		must(slices.Contains(c.Args, "--sandbox=strict"), c.Name+" would run commands unconfined")
	}
	return complaints
}

// TestPodsAgree: the three pods differ in where they listen, what they are called and where the volume comes from, and in nothing else.
func TestPodsAgree(t *testing.T) {
	var want *corev1.PodSpec
	for _, dir := range []string{"base", "agent-sandbox"} {
		for _, r := range build(t, dir) {
			spec, _, ok := podOf(r)
			if !ok {
				continue
			}
			same := spec.DeepCopy()
			c := &same.Containers[0]
			c.Args = slices.DeleteFunc(c.Args, func(a string) bool {
				return strings.HasPrefix(a, "--listen=") || strings.HasPrefix(a, "--allow-host=")
			})
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Name, "POD_") })
			c.ReadinessProbe.HTTPGet.Port, c.LivenessProbe.HTTPGet.Port = portOf(t, spec), portOf(t, spec)
			if !equality.Semantic.DeepEqual(spec.Containers[0].ReadinessProbe, c.ReadinessProbe) || !equality.Semantic.DeepEqual(spec.Containers[0].LivenessProbe, c.LivenessProbe) {
				t.Errorf("%s: a probe does not ask where the server listens", r.where)
			}
			c.ReadinessProbe.HTTPGet.Port.IntVal, c.LivenessProbe.HTTPGet.Port.IntVal = 0, 0
			same.Volumes = slices.DeleteFunc(same.Volumes, func(v corev1.Volume) bool { return v.Name == "workspace" })
			if want == nil {
				want = same
			} else if !equality.Semantic.DeepEqual(want, same) {
				t.Errorf("%s differs from base:\n%v\n%v", r.where, want, same)
			}
		}
	}
}

// TestReferencesLead: selectors, claims and names lead to what is there, also under an overlay's names.
func TestReferencesLead(t *testing.T) {
	for _, dir := range []string{"base", "overlays/project-a"} {
		all := build(t, dir)
		deployment, service := find[*appsv1.Deployment](t, all), find[*corev1.Service](t, all)
		policy, claim := find[*networkingv1.NetworkPolicy](t, all), find[*corev1.PersistentVolumeClaim](t, all)
		spec := &deployment.Spec.Template.Spec
		labels := deployment.Spec.Template.Labels
		for name, selector := range map[string]map[string]string{"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector, "NetworkPolicy": policy.Spec.PodSelector.MatchLabels} {
			if !selects(selector, labels) {
				t.Errorf("%s: the %s selects %v, the pod has %v", dir, name, selector, labels)
			}
		}
		port := portOf(t, spec)
		if service.Spec.Ports[0].TargetPort != port || *policy.Spec.Ingress[0].Ports[0].Port != port {
			t.Errorf("%s: the Service or the NetworkPolicy leads elsewhere than to port %v", dir, port.IntVal)
		}
		if !slices.ContainsFunc(spec.Containers[0].Args, func(a string) bool {
			return slices.Contains(strings.Split(strings.TrimPrefix(a, "--allow-host="), ","), service.Name)
		}) {
			t.Errorf("%s: the server does not answer to the name of its Service, %s", dir, service.Name)
		}
		if spec.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("%s: the pod mounts another claim than %s", dir, claim.Name)
		}
	}
	all := build(t, "agent-sandbox")
	template, pool, claim := find[*extensionsv1beta1.SandboxTemplate](t, all), find[*extensionsv1beta1.SandboxWarmPool](t, all), find[*extensionsv1beta1.SandboxClaim](t, all)
	if pool.Spec.TemplateRef.Name != template.Name || claim.Spec.WarmPoolRef.Name != pool.Name {
		t.Error("claim, pool and template do not lead to each other")
	}
	sandbox, policy := find[*sandboxv1beta1.Sandbox](t, all), find[*networkingv1.NetworkPolicy](t, all)
	if !selects(policy.Spec.PodSelector.MatchLabels, sandbox.Spec.PodTemplate.ObjectMeta.Labels) || selects(policy.Spec.PodSelector.MatchLabels, template.Spec.PodTemplate.ObjectMeta.Labels) {
		t.Error("the NetworkPolicy is not that of the Sandbox alone")
	}
	for _, c := range [][]sandboxv1beta1.PersistentVolumeClaimTemplate{sandbox.Spec.VolumeClaimTemplates, template.Spec.VolumeClaimTemplates} {
		if len(c) != 1 || c[0].Name != "workspace" {
			t.Errorf("the claims are %v", c)
		}
	}
	if template.Spec.EnvVarsInjectionPolicy != extensionsv1beta1.EnvVarsInjectionPolicyDisallowed {
		t.Error("a claim could change how the server is set up")
	}
}

// selects says whether a selector that names something takes these labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

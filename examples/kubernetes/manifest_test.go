package kubernetes

// The manifest is three documents that refer to each other by name, and to the
// library by the names of variables. A slip in one of them shows only in a
// cluster, as a job that does not start: these tests find it here.

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// document is one of the manifest's: for each path of keys its value, such as
// "spec.template.spec.subdomain". Items of a list that have a name are known by
// it.
type document map[string]string

// readManifest reads as much of YAML as the manifest uses: keys with values,
// indented by two, and lists of such.
func readManifest(t *testing.T) map[string]document {
	t.Helper()
	text, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string]document{}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		doc := document{}
		var path []string // the key at each depth
		for line := range strings.Lines(part) {
			body := strings.TrimSpace(line)
			if body == "" || strings.HasPrefix(body, "#") {
				continue
			}
			depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
			item, isItem := strings.CutPrefix(body, "- ")
			if isItem {
				body, depth = item, depth+1
			}
			key, value, ok := strings.Cut(body, ":")
			named := isItem && key == "name"
			if !ok || depth > len(path) && !(named && depth == len(path)+1) {
				t.Fatalf("a line that this test cannot read: %q", line)
			}
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if named {
				path = append(path[:depth-1:depth-1], value, key)
			} else {
				path = append(path[:depth:depth], key)
			}
			if value != "" {
				doc[strings.Join(path, ".")] = value
			}
		}
		byKind[doc["kind"]] = doc
	}
	return byKind
}

func TestTheManifestAgreesWithItselfAndTheLibrary(t *testing.T) {
	m := readManifest(t)
	job, service, secret := m["Job"], m["Service"], m["Secret"]
	if job == nil || service == nil || secret == nil {
		t.Fatalf("a Job, a Service and a Secret are needed; there are %d documents", len(m))
	}
	name := job["metadata.name"]
	const pod, env = "spec.template.spec.", "spec.template.spec.containers.rank.env."
	for _, c := range []struct{ what, got, want string }{
		{"the Job must give its pods an index", job["spec.completionMode"], "Indexed"},
		{"all ranks must run at once", job["spec.parallelism"], job["spec.completions"]},
		{"MUSTER_SIZE is the number of pods", job[env+"MUSTER_SIZE.value"], job["spec.completions"]},
		{"a dead rank cannot come back", job["spec.backoffLimit"], "0"},
		{"nor in its pod", job[pod+"restartPolicy"], "Never"},
		{"the pods have names in the Service", job[pod+"subdomain"], service["metadata.name"]},
		{"the Service is headless", service["spec.clusterIP"], "None"},
		{"ranks are looked for before they are ready", service["spec.publishNotReadyAddresses"], "true"},
		{"the Service selects the Job's pods", service["spec.selector.batch.kubernetes.io/job-name"], name},
		{"rank 0 is pod 0 in the Service", job[env+"MUSTER_ROOT.value"], name + "-0." + service["metadata.name"] + ":" + job[pod+"containers.rank.ports.rendezvous.containerPort"]},
		{"the key comes from the Secret", job[env+"MUSTER_KEY.valueFrom.secretKeyRef.name"], secret["metadata.name"]},
		{"by the name that it has there", secret["stringData."+job[env+"MUSTER_KEY.valueFrom.secretKeyRef.key"]], "change-me-before-use"},
		{"the rank is the index, so nothing may set it", job[env+"MUSTER_RANK.value"], ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestTheRecipeBuildsTheImageThatTheJobNames(t *testing.T) {
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	if !strings.HasPrefix(last, "\nFROM scratch\n") || !strings.Contains(last, "COPY --from=build /image/ /\n") {
		t.Errorf("the image must hold nothing but what was collected:%s", last)
	}
	if !regexp.MustCompile(`go build -tags ofi\b.* -o /program `).Match(text) || !strings.Contains(string(text), "collect.sh /program /image") {
		t.Error("the program must be built with the tag of its network and collected with its libraries")
	}
	tag := regexp.MustCompile(`podman build .* -t (\S+) `).FindSubmatch(text)
	image := readManifest(t)["Job"]["spec.template.spec.containers.rank.image"]
	if tag == nil || image != string(tag[1])+":latest" {
		t.Errorf("the Job runs %q, which the recipe does not build", image)
	}
}

package kubernetes

// The manifest consists of two documents that refer to each other by name, and to the
// library by the names of variables. In a cluster a mistake shows only as a job that does
// not start; these tests find it earlier.

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// document maps the key paths of a document, such as "spec.template.spec.subdomain", to
// their values. List items with a name are identified by it.
type document map[string]string

// readManifest parses the subset of YAML that the manifest uses: keys with values, indented
// by two, and lists of them.
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
				t.Fatalf("unsupported line: %q", line)
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

func TestManifestIsConsistent(t *testing.T) {
	m := readManifest(t)
	job, service := m["Job"], m["Service"]
	if job == nil || service == nil {
		t.Fatalf("a Job and a Service are needed; there are %d documents", len(m))
	}
	name := job["metadata.name"]
	const pod, env = "spec.template.spec.", "spec.template.spec.containers.rank.env."
	for _, c := range []struct{ what, got, want string }{
		{"the Job must give its pods an index", job["spec.completionMode"], "Indexed"},
		{"all ranks must run at once", job["spec.parallelism"], job["spec.completions"]},
		{"MUSTER_SIZE is the number of pods", job[env+"MUSTER_SIZE.value"], job["spec.completions"]},
		{"a failed rank cannot rejoin", job["spec.backoffLimit"], "0"},
		{"nor in its pod", job[pod+"restartPolicy"], "Never"},
		{"the pods have names in the Service", job[pod+"subdomain"], service["metadata.name"]},
		{"the Service is headless", service["spec.clusterIP"], "None"},
		{"ranks are reachable before they are ready", service["spec.publishNotReadyAddresses"], "true"},
		{"the Service selects the Job's pods", service["spec.selector.batch.kubernetes.io/job-name"], name},
		{"rank 0 is pod 0 in the Service", job[env+"MUSTER_ROOT.value"], name + "-0." + service["metadata.name"] + ":" + job[pod+"containers.rank.ports.rendezvous.containerPort"]},
		{"the key is in no file", job[env+"MUSTER_KEY.value"], ""},
		{"the rank is the index, so nothing may set it", job[env+"MUSTER_RANK.value"], ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

// Users would keep a key that is in a file unchanged, so the instructions generate one, with
// the name that the Job uses.
func TestInstructionsGenerateKey(t *testing.T) {
	const ref = "spec.template.spec.containers.rank.env.MUSTER_KEY.valueFrom.secretKeyRef."
	job := readManifest(t)["Job"]
	want := "kubectl create secret generic " + job[ref+"name"] + " --from-literal=" + job[ref+"key"] + "=$(openssl rand -hex 32)\n"
	for _, name := range []string{"README.md", "job.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s must contain the command that creates the Secret of the Job: %s", name, want)
		}
		if strings.Contains(string(text), "change-me") {
			t.Errorf("%s must not contain a placeholder key", name)
		}
	}
}

func TestContainerfileBuildsImageOfJob(t *testing.T) {
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	if !strings.HasPrefix(last, "\nFROM scratch\n") || !strings.Contains(last, "COPY --from=build /image/ /\n") {
		t.Errorf("the image must contain only the collected files:%s", last)
	}
	if !regexp.MustCompile(`go build -tags ofi\b.* -o /program `).Match(text) || !strings.Contains(string(text), "collect.sh /program /image") {
		t.Error("the program must be built with tag ofi and collected with its libraries")
	}
	tag := regexp.MustCompile(`podman build .* -t (\S+) `).FindSubmatch(text)
	image := readManifest(t)["Job"]["spec.template.spec.containers.rank.image"]
	if tag == nil || image != string(tag[1])+":latest" {
		t.Errorf("the Job runs %q, which the Containerfile does not build", image)
	}
}

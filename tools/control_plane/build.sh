#!/bin/bash
# Builds etcd, kube-apiserver, kube-controller-manager and kube-scheduler from Debian bookworm's packages.
# usage: build.sh SCRATCH OUT     OUT gets the four binaries; SCRATCH (about 2 GB) is the caller's to remove.
# Steps go to file descriptor 3, one line each; everything else is a log. binaries.py has checked the tools.
set -euo pipefail
scratch=$1 out=$2
say() { echo "$*" >&3; echo "== $*"; }

# The mirror that this machine is set to; the suite is always bookworm: later ones have another Kubernetes.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Component: main' \
  2>/dev/null | grep -v -e security -e debug | head -1 || true)
mirror=${mirror:-http://deb.debian.org/debian/}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || { echo "the package debian-archive-keyring is missing"; exit 1; }
mkdir -p "$scratch"/{debs,home,apt/lists/partial,apt/cache/archives/partial} "$out"
printf 'deb [signed-by=%s] %s bookworm main\ndeb-src [signed-by=%s] %s bookworm main\n' \
  "$keyring" "$mirror" "$keyring" "$mirror" > "$scratch/apt/sources.list"
apt_options=(-qq -o "Dir::Etc::sourcelist=$scratch/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$scratch/apt/lists" -o "Dir::Cache=$scratch/apt/cache" -o APT::Sandbox::User=root
  -o Acquire::Retries=3 -o Acquire::http::Timeout=30)

say "downloading Kubernetes' source, Go and etcd from $mirror"
apt-get "${apt_options[@]}" -o APT::Update::Error-Mode=any update
(cd "$scratch" && apt-get "${apt_options[@]}" source --download-only kubernetes)
(cd "$scratch/debs" && apt-get "${apt_options[@]}" download \
  golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server)

say "unpacking"
for each in "$scratch"/debs/golang-1.19*.deb; do dpkg-deb -x "$each" "$scratch/go"; done
dpkg-deb -x "$scratch"/debs/golang-github-modern-go-reflect2-dev_*.deb "$scratch/reflect2"
dpkg-deb -x "$scratch"/debs/etcd-server_*.deb "$scratch/etcd"
cp "$scratch/etcd/usr/bin/etcd" "$out/"
dpkg-source -x --no-check "$scratch"/kubernetes_*.dsc "$scratch/kubernetes"
# The vendored reflect2 1.0.1 panics on every write when it is built by Go >= 1.18; Debian's 1.0.2 fits in.
vendored=$scratch/kubernetes/vendor/github.com/modern-go/reflect2
rm -rf "$vendored" && mkdir "$vendored"
cp "$scratch"/reflect2/usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} "$vendored/"
rm -f "$vendored"/*_test.go

say "generating the OpenAPI definitions"
export GOROOT=$scratch/go/usr/lib/go-1.19 GOPROXY=off GO111MODULE=off CGO_ENABLED=0 HOME=$scratch/home
export GOPATH=$scratch/kubernetes/.go GOCACHE=$scratch/gocache GOFLAGS= PATH=$scratch/go/usr/lib/go-1.19/bin:$PATH
commit=faecb196815e248d3ecfb03c680a4507229c2a56
export KUBE_GIT_VERSION=v1.20.2 KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20 KUBE_GIT_TREE_STATE=archive KUBE_GIT_COMMIT=$commit
mkdir -p "$GOPATH/src/k8s.io" && ln -sfn ../../.. "$GOPATH/src/k8s.io/kubernetes"
(cd "$scratch/kubernetes" && make gen_openapi)   # the one generated file that the source package lacks

flags="-s -w"
for package in component-base/version client-go/pkg/version; do
  at=k8s.io/kubernetes/vendor/k8s.io/$package
  flags="$flags -X $at.gitVersion=v1.20.2 -X $at.gitMajor=1 -X $at.gitMinor=20 -X $at.gitTreeState=archive"
  flags="$flags -X $at.gitCommit=$commit"
done
cd "$GOPATH/src/k8s.io/kubernetes"
for name in kube-apiserver kube-controller-manager kube-scheduler; do
  say "compiling $name"
  go build -trimpath -tags providerless -ldflags "$flags" -o "$out/$name" "k8s.io/kubernetes/cmd/$name"
done

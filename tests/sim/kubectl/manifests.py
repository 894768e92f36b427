"""What the kubectl tests apply."""

from __future__ import annotations

NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {accelerator: huawei-Ascend910}}
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: mindie, labels: {app: web}}
spec:
  nodeName: node-1
  containers:
    - name: main
      image: mindie:1
      env: [{name: A, value: "1"}]
      resources: {limits: {cpu: "1", memory: 1Gi}}
"""

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: mindie}
data: {a: "1"}
"""

JOB = """
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata: {name: prefill-0, namespace: mindie, labels: {framework: pytorch, jobID: svc}}
spec:
  schedulerName: volcano
  runPolicy: {schedulingPolicy: {minAvailable: 1, queue: default}}
  replicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: ascend
              image: mindie:1
              resources: {limits: {huawei.com/Ascend910: 8}, requests: {huawei.com/Ascend910: 8}}
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: proxy, namespace: mindie}
spec:
  replicas: 2
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec: {containers: [{name: main, image: proxy:1}]}
"""

EVERYTHING = f"{NODE}---{POD}---{CONFIG_MAP}---{JOB}---{DEPLOYMENT}"

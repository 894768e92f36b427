"""Job YAML -> a slim typed description: what lint judges and `explain` explains. Pure, and never raises.

`descriptions.py` is what is known of a job, `reading.py` how it is read from an object (AscendJob, vcjob,
Deployment and StatefulSet), `places.py` where in the file a thing stands, `scripts.py` what a container's
command shows of the start script.
"""

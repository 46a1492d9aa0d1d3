"""The judge: models in the ``grader`` role that read a response where rules don't suffice."""

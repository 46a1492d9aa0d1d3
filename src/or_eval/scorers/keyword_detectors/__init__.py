"""Published keyword detectors of refusals, rebuilt for comparison with older tables."""

from or_eval.scorers.keyword_detectors.detectors import Detector, detector_names, named_detector

__all__ = ["Detector", "detector_names", "named_detector"]

"""What is told of requests besides their answers: metrics, logs, traces, decisions."""

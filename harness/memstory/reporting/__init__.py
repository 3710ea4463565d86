"""From a run to what people read: report.md, the terminal, comparisons. All take a `Run`."""

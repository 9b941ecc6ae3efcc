"""The yardstick: `hakmem bench` and `hakmem compare`."""

"""Test set-up of the plugin itself: `pytester` for the plugin's own tests."""

pytest_plugins = ("pytester",)

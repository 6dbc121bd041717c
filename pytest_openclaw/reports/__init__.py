"""Renders a summary as text: terminal, Markdown, HTML, JUnit, CSV."""

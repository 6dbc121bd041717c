// A page that is whole without a script: only its colors can be switched.

buildTheme();

"""The names that the text detector knows, and the detection of a command's arguments.

The detector needs them only where a text is ambiguous: `"ps aux"` is a command and `"free will"` is
not, though both are two plain words in quotes.
"""

from __future__ import annotations

import re


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


WELL_KNOWN = _words(
    """
    ansible apt apt-cache apt-get awk base64 basename bash blkid bzip2 cargo cat cd chgrp chmod chown cmake
    cp crontab curl df dig dirname dmesg dnf docker docker-compose dpkg du echo egrep fdisk fgrep gawk gcc
    git gpg grep gunzip gzip hostname hostnamectl htop ifconfig iostat iptables javac journalctl jq killall
    kubectl ln ls lsblk lscpu lsmod lsof lspci lsusb md5sum mkdir mktemp mpstat mv nano nc netstat nmap nohup
    npm npx nproc nslookup nvidia-smi ollama openssl pacman passwd perl pgrep php ping pip pip3 pipx pkill
    pnpm podman printf ps psql pwd python3 readlink realpath redis-cli rg rm rmdir rpm rsync rustc scp sed
    sftp sha256sum sqlite3 ss ssh stat su sudo systemctl tar tcpdump tee terraform tr traceroute ufw umount
    uname uniq unzip uptime useradd usermod vi vim vmstat wc wget whoami xargs xz yarn yq yum zcat zip zsh
    zstd
    """
)
"""Commands that are hardly ever the first word of a quoted sentence."""

EVERYDAY = _words(
    """
    apk at brew clear column cut date diff dir env exec exit export fg file find free gh go group
    groups head helm history host id install ip ipconfig java jobs join kill last less link locate look mail
    make man more mount mysql nice node open paste patch print printenv python read reboot route ruby screen
    script service set sh shutdown sleep snap sort source split strings tail tasklist test time timeout tmux
    top touch tree type uv w wait watch which who write yes
    """
)
"""Commands that are also everyday words: in quotes or after `#` they need more evidence."""

OPENCLAW_TOOLS = _words(
    """
    agents_list agents_wait apply_patch ask_user conversations_list conversations_send conversations_turn
    create_goal dir_fetch dir_list file_fetch file_write get_goal memory_get memory_search mobile_ui
    node_inference progress_card session_status sessions_history sessions_list sessions_search sessions_send
    sessions_spawn sessions_yield skill_workshop talk_voice tool_call tool_describe tool_search update_goal
    web_fetch web_search
    """
)
"""OpenClaw's tools whose names look like any other identifier of a program."""

COMMANDS = WELL_KNOWN | EVERYDAY

_VERSION = re.compile(r"[\d.]+$")
_OPTION_OR_PATH = re.compile(r"\s*(?:--?[A-Za-z]|~(?:/|\s*$)|\.{0,2}/[\w.*~$-])")
_OPERAND = re.compile(r"\s*(?:-\d|\+%|[*$]\w*|[/.](?=\s|$)|[\w./-]{1,80}\.[A-Za-z]\w{0,5}(?=\s|$)|\d+\s*$)")
_PIPED = re.compile(r"(?:^|\s)\|\s*([a-z][a-z0-9._-]{0,63})")


def is_known(name: str) -> bool:
    """Whether `name`, in lower case, is a command or a tool of OpenClaw; `python3.11` is `python`."""
    return name in COMMANDS or name in OPENCLAW_TOOLS or _VERSION.sub("", name) in COMMANDS


def takes_arguments(name: str, rest: str) -> bool:
    """Whether `rest` looks like the arguments of `name`: an option, a path, or a pipe into a command.

    An everyday word may also be followed by a file name, a number alone, `*`, `$x`, `.` or `/`.
    """
    if _OPTION_OR_PATH.match(rest):
        return True
    if name in EVERYDAY and _OPERAND.match(rest):
        return True
    return any(piped[1] in COMMANDS for piped in _PIPED.finditer(rest))

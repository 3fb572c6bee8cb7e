"""The lab's seven domains, one file each."""

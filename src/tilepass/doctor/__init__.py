"""What `tilepass doctor` checks: the installation, the machine, and the exactness of the bridge."""

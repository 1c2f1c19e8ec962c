"""Files and directories: followed as they grow, and written under names that say which offsets they hold."""

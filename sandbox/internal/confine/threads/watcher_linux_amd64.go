package threads

// elfMachine is how an ELF file names this architecture.
const elfMachine = 62

// memwall-viewer: the program.
int main() { return 1; }

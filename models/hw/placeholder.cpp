// Placeholder so that the empty library links; removed with the first source.

service Life {
  string call()
}

service Life {
  string call(1: string text)
}

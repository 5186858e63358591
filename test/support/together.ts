type Test = () => Promise<void>

/**
 * Registers independent tests that mostly wait. The first one to run starts them all, so that their waits overlap;
 * each still reports its own outcome under its own name.
 */
export const together = (register: (name: string, test: Test) => void) => {
  const tests: Test[] = []
  let outcomes: readonly Promise<void>[] | undefined
  return (name: string, test: Test): void => {
    const nth = tests.push(test) - 1
    register(name, async () => {
      outcomes ??= tests.map((each) => each())
      for (const outcome of outcomes) outcome.catch(() => {}) // its own test reports it
      await outcomes[nth]
    })
  }
}

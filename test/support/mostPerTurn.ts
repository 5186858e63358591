/** Uses the processor for as long as a page of large documents does. */
export const busy = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
}

/** Resolves with the most steps between two turns of the event loop. */
export const mostPerTurn = async (work: (step: () => void) => Promise<unknown>): Promise<number> => {
  let [steps, most, isOver] = [0, 0, false]
  const watching = (async () => {
    for (; !isOver; steps = 0) {
      await new Promise(setImmediate)
      most = Math.max(most, steps)
    }
  })()
  await work(() => steps++)
  isOver = true
  await watching
  return most
}

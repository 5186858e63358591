/** mulberry32: returns the same whole numbers from 0 to `below` - 1 for the same seed. */
export const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** The seed of this process: `SVC_TEST_SEED`, or a new one. The test that uses it names it. */
export const SEED = Number(process.env['SVC_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

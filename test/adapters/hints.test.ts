import { openHints } from '../../src/adapters/embedded/hints.ts'
import { hintsContract } from '../contracts/hints.ts'

hintsContract('in-process', async () => {
  const hints = openHints()
  return { hints, close: () => hints.close() }
})

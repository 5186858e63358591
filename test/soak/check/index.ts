import type { Records } from '../records.ts'
import { checkCalls } from './calls.ts'
import { checkChains } from './chains.ts'
import { checkClients } from './clients.ts'
import { checkEffects } from './effects.ts'
import { checkEvents } from './events.ts'
import type { Finding } from './finding.ts'
import { checkLists } from './lists.ts'
import { checkModels } from './models.ts'
import { runStoriesOf } from './runStories.ts'
import { checkTranscripts } from './transcripts.ts'

/** Compares the log, the read models, the transcripts and the records of clients and functions, fact by fact. */
export const check = (records: Records): Finding[] => {
  const { stories, findings } = runStoriesOf(records.log)
  return [
    ...checkClients(records),
    ...findings,
    ...checkChains(stories, records),
    ...checkEvents(records.log, stories),
    ...checkCalls(records, stories),
    ...checkEffects(records, stories),
    ...checkLists(records, stories),
    ...checkModels(records),
    ...checkTranscripts(records),
  ]
}

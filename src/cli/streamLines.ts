import type { Client, EnvEvent, EventPublished, Run, StreamEvent } from '../client/index.ts'
import { ServiceError } from '../client/index.ts'
import { clock } from '../clock.ts'
import { onOneLine } from '../logger.ts'
import type { Printed } from './command.ts'
import { runLine } from './runText.ts'
import type { Paint } from './terminal.ts'

const words = {
  'run:start': 'started',
  'run:stop': 'succeeded',
  'run:fail': 'failed',
  'run:cancel': 'cancelled',
} as const

/** An event of a stream as a line. */
export const streamLine = (event: StreamEvent | EventPublished, paint: Paint): Printed => {
  switch (event.event) {
    case 'event:published': {
      const { event_type, event_id, stream_id } = event.data
      return {
        json: event,
        text: `${onOneLine(`Published ${event_type}  event ${event_id}  stream ${stream_id}`)}\n`,
      }
    }
    case 'stream:data': {
      const { data_type, payload, run_id } = event.data
      const shown = `${data_type}  ${JSON.stringify(payload)}  ${run_id}`
      return { json: event, text: `${clock.iso()}  ${'data'.padEnd(9)}  ${onOneLine(shown)}\n` }
    }
    default: {
      const { run } = event.data
      return { json: event, text: runLine(run.stop_time ?? run.start_time, words[event.event], run, paint) }
    }
  }
}

/** An event of the environment as a line. The attempt, the times and the error of a run are read from the run. */
export const envLine = async (client: Client, event: EnvEvent, paint: Paint): Promise<Printed> => {
  if (event.event === 'stream:created' || event.event === 'event:handled') return { json: event, text: '' }
  if (event.event === 'event:created') {
    const { event_type, event_id, stream_id } = event.data
    const shown = `${event_type}  ${event_id}  stream ${stream_id}`
    return { json: event, text: `${clock.iso()}  ${'event'.padEnd(9)}  ${onOneLine(shown)}\n` }
  }
  const { run_id } = event.data
  const run = await client.runs.get(run_id).catch(absent)
  const word = words[event.event]
  const text = run
    ? runLine(run.stop_time ?? run.start_time, word, run, paint)
    : `${clock.iso()}  ${word.padEnd(9)}  ${onOneLine(run_id)}\n`
  return { json: event, text }
}

/** The run may have been deleted since. */
const absent = (error: unknown): Run | null => {
  if (error instanceof ServiceError && error.status === 404) return null
  throw error
}

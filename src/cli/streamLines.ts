import type { EnvEvent, EventPublished, RunStatus, StreamEvent } from '../client/index.ts'
import { clock, isoOf } from '../clock.ts'
import { hasTime, timeOf } from '../ids.ts'
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
      const { data_type, payload, run_id, emitted_at } = event.data
      const shown = `${data_type}  ${JSON.stringify(payload)}  ${run_id}`
      const time = emitted_at ?? clock.iso() // an older service sends none
      return { json: event, text: `${time}  ${'data'.padEnd(9)}  ${onOneLine(shown)}\n` }
    }
    case 'stream:expired':
      return { json: event, text: `${clock.iso()}  expired    earlier events are kept no longer\n` }
    default: {
      const { run } = event.data
      return { json: event, text: runLine(run.stop_time ?? run.start_time, words[event.event], run, paint) }
    }
  }
}

/** The status of a run after an event of the environment. */
const statusAfter = (event: RunEventOfEnv): RunStatus => {
  switch (event.event) {
    case 'run:start':
      return 'running'
    case 'run:stop':
      return 'succeeded'
    case 'run:fail':
      return event.data.retry_at === null ? 'failed' : 'pending_retry'
    case 'run:cancel':
      return 'cancelled'
  }
}

type RunEventOfEnv = Extract<EnvEvent, { readonly event: keyof typeof words }>

/** An event of the environment as a line. The event has all of it, so that a busy environment is read by one request. */
export const envLine = (event: EnvEvent, paint: Paint): Printed => {
  if (event.event === 'stream:created' || event.event === 'event:handled') return { json: event, text: '' }
  if (event.event === 'event:created') {
    const { event_type, event_id, stream_id } = event.data
    const shown = `${event_type}  ${event_id}  stream ${stream_id}`
    return { json: event, text: `${createdAt(event_id)}  ${'event'.padEnd(9)}  ${onOneLine(shown)}\n` }
  }
  if (event.event === 'calls:expired')
    return {
      json: event,
      text: `${clock.iso()}  expired    events before ${event.data.before} are kept no longer\n`,
    }
  const run = { stop_time: null, retry_at: null, ...event.data, status: statusAfter(event) }
  const time = run.stop_time ?? run.start_time ?? clock.iso()
  return { json: event, text: runLine(time, words[event.event], run, paint) }
}

/** When the service published an event: its id contains the time. Ids of other services need not. */
const createdAt = (event_id: string): string => (hasTime(event_id) ? isoOf(timeOf(event_id)) : clock.iso())

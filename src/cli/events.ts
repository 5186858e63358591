import type { Event, EventPublished } from '../client/index.ts'
import { type CliCommand, command, type Printed } from './command.ts'
import { prettyJson, runColumns } from './runText.ts'
import { envLine, streamLine } from './streamLines.ts'
import { type Column, fieldsOf } from './table.ts'
import { DEFAULT_LIMIT, idempotencyKey, idOf, INPUT, jsonOrInput, limit, parsedJson } from './values.ts'
import { take } from './take.ts'

const columns: readonly Column<Event>[] = [
  { title: 'TIME', of: ({ event_time }) => event_time },
  { title: 'TYPE', of: ({ event_type }) => event_type, cut: true },
  {
    title: 'DATA',
    of: ({ event_data, event_data_ref }) =>
      event_data_ref ? `${event_data_ref.size} bytes` : JSON.stringify(event_data),
    cut: true,
  },
  { title: 'ID', of: ({ event_id }) => event_id },
]

const NO_HANDLER = 'none: no deployed function has this on-event'

/** Whether an event controls the service. It has no handlers, and some start no run. */
const isControl = (type: string): boolean => type.startsWith('svc:')

/** Says that an event started no run. The JSON is that of the activity of an environment. */
const unhandledLine = ({ event_id, stream_id }: EventPublished['data']): Printed => ({
  json: { event: 'event:handled', data: { event_id, stream_id, run_ids: [] } },
  text: `handlers  ${NO_HANDLER}\n`,
})

export const eventCommands: readonly CliCommand[] = [
  command({
    name: 'send',
    summary: 'publish an event',
    description:
      'Publishes an event and prints its id, its stream and the number of its handlers. With --follow, it prints what ' +
      'happens in the stream until everything has ended; the exit code is 1 if a run has failed for the last time. An event ' +
      'without a handler ends with 0, with --follow too, because nothing has failed.',
    ofEnvironment: true,
    arguments: {
      type: { description: 'the type of the event, such as order:created' },
      data: {
        description:
          'the data as JSON, @FILE with a file that contains it, or - for the standard input (default: null)',
        count: 'optional',
        parse: jsonOrInput,
      },
    },
    options: {
      follow: { short: 'f', description: 'print what happens in the stream until it is complete' },
      stream: {
        value: 'ID',
        description: 'continue this stream (default: a new one)',
        parse: idOf('a stream'),
      },
      'idempotency-key': idempotencyKey('publishes nothing'),
    },
    examples: [
      `svc send order:created '{"id": 7}'`,
      'svc send order:created @order.json --follow',
      'generate-order | svc send order:created -',
    ],
    async run({ args: { type, data }, options, client, input, print, paint, signal }) {
      const { stream, follow, 'idempotency-key': key } = options
      const event_data = data === INPUT ? parsedJson(await input()) : data
      const given = {
        signal,
        ...(stream !== undefined && { stream_id: stream }),
        ...(key !== undefined && { idempotencyKey: key }),
      }
      const service = client()
      if (follow) {
        let failed = false
        let unhandled: EventPublished['data'] | null = null
        for await (const event of service.sendAndFollow<string>(type, event_data, {
          ...given,
          times: true,
        })) {
          if (event.event === 'event:published') unhandled = event.data
          else if (event.event === 'run:fail') failed ||= event.data.run.status === 'failed'
          if ('run' in event.data && event.data.run.event_id === unhandled?.event_id) unhandled = null
          await print(streamLine(event, paint))
        }
        if (unhandled && !isControl(type)) await print(unhandledLine(unhandled))
        return { failed }
      }
      const event = await service.send<string>(type, event_data, given)
      const handlers = event.handlers === 0 ? NO_HANDLER : event.handlers?.toString()
      return {
        json: event,
        text: fieldsOf({
          published: event.event_type,
          event: event.event_id,
          stream: event.stream_id,
          handlers,
        }),
      }
    },
  }),
  command({
    name: 'follow',
    summary: 'print what happens in a stream, or in the environment',
    description:
      'Prints the runs and data of a stream until it is complete. Without a stream, it prints the events and runs of the ' +
      'environment from now on until Ctrl-C. A lost connection is restored without loss. With --json, each line is one event.',
    ofEnvironment: true,
    arguments: {
      stream: { description: 'the id of the stream', count: 'optional', parse: idOf('a stream') },
    },
    options: {
      from: { value: 'POSITION', description: 'start, end, or the id of the last event that was seen' },
    },
    examples: ['svc follow', 'svc follow STREAM_ID', 'svc follow --json | jq .event'],
    async run({ args: { stream }, options: { from }, client, print, paint, signal }) {
      const service = client()
      const given = { signal, ...(from !== undefined && { from }) }
      try {
        await service.request('GET /v1/sign-in', { signal }) // a follower would wait for a service that does not answer
        if (stream !== undefined)
          for await (const event of service.follow(stream, { ...given, times: true }))
            await print(streamLine(event, paint))
        else for await (const event of service.followEnv(given)) await print(envLine(event, paint))
      } catch (error) {
        if (!signal.aborted) throw error // else it was followed to its end
      }
    },
  }),
  command({
    group: 'events',
    name: 'list',
    isDefault: true,
    summary: 'list the events, newest first',
    description: 'Lists the events of the environment, newest first.',
    ofEnvironment: true,
    options: {
      type: { value: 'TYPE', description: 'only events of this type' },
      limit,
    },
    examples: ['svc events', 'svc events --type order:created --limit 5 --json'],
    async run({ options: { type, limit: most = DEFAULT_LIMIT }, client, table, signal }) {
      const filters = { signal, ...(type !== undefined && { event_type: type }) }
      const events = await take(client().events.all(filters), most)
      return { json: events, text: table(events, columns) }
    },
  }),
  command({
    group: 'events',
    name: 'show',
    summary: 'show an event and the runs that it started',
    description: 'Shows an event with its data, and the newest 100 runs that it started.',
    ofEnvironment: true,
    arguments: { event: { description: 'the id of the event', parse: idOf('an event') } },
    examples: ['svc events show EVENT_ID', 'svc events show EVENT_ID --json'],
    async run({ args, client, table, signal }) {
      const service = client()
      const event = await service.events.get(args.event, { signal })
      const { data: runs } = await service.events.runs(args.event, { signal, limit: 100 })
      const fields = fieldsOf({
        event: event.event_id,
        type: event.event_type,
        time: event.event_time,
        stream: event.stream_id,
      })
      const shown = runs.length === 0 ? 'No function has handled it.\n' : table(runs, runColumns)
      return { json: { ...event, runs }, text: `${fields}\ndata\n${prettyJson(event.event_data)}\n${shown}` }
    },
  }),
]

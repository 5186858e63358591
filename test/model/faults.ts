import { isAppError } from '../../src/errors.ts'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import { context } from '../../src/domain/context.ts'
import { domains } from '../../src/domain/customDomains.ts'
import { file } from '../../src/domain/file.ts'
import { issued } from '../../src/domain/issued.ts'
import { name } from '../../src/domain/name.ts'
import { project } from '../../src/domain/project.ts'
import { stream } from '../../src/domain/stream.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { forwarding } from '../support/forwarding.ts'
import type { Fault } from './world.ts'

/** Faults of the kinds that the model must find, by the subject that finds them. */
export const FAULTS: readonly { readonly subject: string; readonly text: string; readonly fault: Fault }[] = [
  {
    subject: 'busy stream',
    text: 'a stream that forgets which events were published under a key',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        streams: new CommandHandler(store, {
          ...stream,
          decide: (command, state) => stream.decide(command, { ...state, forgotten: null }),
        }),
      }),
    },
  },
  {
    subject: 'requests',
    text: 'a decider that ignores the key of a request',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        streams: new CommandHandler(store, {
          ...stream,
          decide: (command, state) =>
            stream.decide(
              command.type === 'PublishEvent'
                ? { ...command, event_id: `${command.event_id.slice(0, -4)}${digits()}` }
                : command,
              state,
            ),
        }),
      }),
    },
  },
  { subject: 'runs', text: 'a store that accepts an append at an old revision', fault: { store: careless } },
  { subject: 'requests', text: 'a store that loses an update of two', fault: { store: careless } },
  {
    subject: 'runs',
    text: 'a read that misses the newest fact',
    fault: { store: (store) => forwarding(store, { read: (...args) => withoutLast(store, ...args) }) },
  },
  {
    subject: 'runs',
    text: 'a run that ends twice',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        streams: new CommandHandler(store, {
          ...stream,
          evolve: (state, fact) => (fact.event.type === 'RunSucceeded' ? state : stream.evolve(state, fact)),
        }),
      }),
    },
  },
  {
    subject: 'runs',
    text: 'an end that any worker may report',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        streams: new CommandHandler(store, {
          ...stream,
          decide(command, state) {
            if (command.type !== 'FailRun') return stream.decide(command, state)
            const run = state.runs.get(command.run_id)
            const worker_id = run?.status === 'running' ? run.workerId : command.worker_id
            return stream.decide({ ...command, worker_id }, state)
          },
        }),
      }),
    },
  },
  {
    subject: 'projects',
    text: 'a name that two projects get',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        names: new CommandHandler(store, {
          ...name,
          decide: (command) =>
            command.type === 'ReserveName'
              ? [{ type: 'NameReserved', name: command.name, ...command.by }]
              : [],
        }),
      }),
    },
  },
  {
    subject: 'projects',
    text: 'a deployed build that can be deleted',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        projects: new CommandHandler(store, {
          ...project,
          decide: (command, state) =>
            project.decide(
              command,
              command.type === 'DeleteBuild' && state.status === 'active'
                ? { ...state, deployed: null }
                : state,
            ),
        }),
      }),
    },
  },
  {
    subject: 'context',
    text: 'a deleted variable that is remembered',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        contexts: new CommandHandler(store, {
          ...context,
          evolve: (state, fact) =>
            fact.event.type === 'ContextVariableDeleted' ? state : context.evolve(state, fact),
        }),
      }),
    },
  },
  {
    subject: 'credentials',
    text: 'a revocation without effect',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        issued: new CommandHandler(store, {
          ...issued,
          decide: (command, state) =>
            command.type === 'RevokeServiceKey' ? [] : issued.decide(command, state),
        }),
      }),
    },
  },
  {
    subject: 'files',
    text: 'a deletion of whatever file is at the path',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        files: new CommandHandler(store, {
          ...file,
          decide: (command, state) => (command.type === 'DeleteFile' ? [] : file.decide(command, state)),
        }),
      }),
    },
  },
  {
    subject: 'domains',
    text: 'a limit of the plan that is not checked',
    fault: {
      aggregates: (all, store) => ({
        ...all,
        domains: new CommandHandler(store, {
          ...domains,
          decide: (command, state) =>
            domains.decide(command.type === 'RegisterDomain' ? { ...command, max: null } : command, state),
        }),
      }),
    },
  },
]

let count = 0
const digits = (): string => String(1000 + (count++ % 9000))

/** Appends at the revision that the stream has, whatever revision the command read. */
function careless(store: EventStore): EventStore {
  return forwarding(store, {
    async append(stream, events, expected) {
      try {
        return await store.append(stream, events, expected)
      } catch (error) {
        if (!isAppError(error, 'wrong_revision')) throw error
        const { actual } = error.data
        return store.append(stream, events, typeof actual === 'number' ? actual : 'none')
      }
    },
  })
}

async function* withoutLast(store: EventStore, ...args: Parameters<EventStore['read']>) {
  const facts = await Array.fromAsync(store.read(...args))
  yield* facts.length > 3 ? facts.slice(0, -1) : facts
}

import fc from 'fast-check'
import { type Excuse, refuse, type Subject } from '../subject.ts'
import { openFiles } from './filesReal.ts'
import { type FilesCommand, LARGE } from './filesSetup.ts'

interface FilesState {
  /** By path; `born` distinguishes files that were stored at the same path one after the other. */
  files: Record<string, { content: string; born: number }>
  /** How many files each path has had. */
  births: Record<string, number>
  uploads: Record<
    string,
    {
      status: 'pending' | 'completed' | 'aborted'
      path: string
      parts: Record<number, string>
      /** The file that it became. */
      born: number
    }
  >
}

const path = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('a.txt', 'dir/b.txt') },
  { weight: 1, arbitrary: fc.constant('/wrong') },
)
const upload = fc.constantFrom('u0', 'u1', 'u2', 'u3', 'u4', 'u5')
const content = fc.string({ maxLength: 8 })
const op = <const T extends string>(...values: T[]) => fc.constantFrom(...values)

/** Files of an environment, stored at once or in parts. */
export const files: Subject<FilesState, FilesCommand> = {
  name: 'files',
  initial: { files: {}, births: {}, uploads: {} },

  commands: fc.oneof(
    { weight: 5, arbitrary: fc.record({ op: op('store'), path, content }) },
    { weight: 5, arbitrary: fc.record({ op: op('read', 'delete'), path }) },
    { weight: 6, arbitrary: fc.record({ op: op('begin'), upload, path }) },
    {
      weight: 7,
      arbitrary: fc.record({
        op: op('part'),
        upload,
        number: fc.constantFrom(1, 1, 1, 1, 1, 1, 2, 2, 3, 0),
        content: fc.oneof({ weight: 12, arbitrary: content }, { weight: 1, arbitrary: fc.constant(LARGE) }),
      }),
    },
    { weight: 6, arbitrary: fc.record({ op: op('complete', 'complete', 'abort'), upload }) },
    { weight: 1, arbitrary: fc.record({ op: op('expire') }) },
  ),

  step(state, command) {
    const { files, uploads } = state
    switch (command.op) {
      case 'store':
        demandPath(command.path)
        put(state, command.path, command.content)
        return
      case 'read':
        return (files[command.path] ?? refuse('not_found')).content
      case 'delete':
        if (!files[command.path]) refuse('not_found')
        delete files[command.path]
        return
      case 'begin':
        demandPath(command.path)
        uploads[command.upload] ??= { status: 'pending', path: command.path, parts: {}, born: 0 }
        return
      case 'part': {
        if (command.number === 0) refuse('bad_request')
        const known = uploads[command.upload]
        if (known?.status !== 'pending') return refuse('not_found')
        known.parts[command.number] = command.content
        return
      }
      case 'complete': {
        const known = uploads[command.upload]
        if (!known || known.status === 'aborted') return refuse('not_found')
        if (known.status === 'completed' && files[known.path]?.born !== known.born) refuse('not_found')
        if (known.status === 'completed') return
        const whole = assembled(known.parts)
        known.born = put(state, known.path, whole)
        known.status = 'completed'
        return
      }
      case 'abort': {
        const known = uploads[command.upload]
        if (known?.status !== 'pending') return refuse('not_found')
        known.status = 'aborted'
        return
      }
      case 'expire':
        for (const known of Object.values(uploads)) if (known.status === 'pending') known.status = 'aborted'
        return
      default:
        return command satisfies never
    }
  },

  view: ({ files, uploads }) => ({
    files: Object.fromEntries(Object.entries(files).map(([at, { content }]) => [at, content])),
    pending: Object.entries(uploads)
      .flatMap(([name, { status }]) => (status === 'pending' ? [name] : []))
      .sort(),
  }),

  repeats: ({ op }) => op !== 'expire',

  excuse(command, other): Excuse<FilesState> {
    const replaces = other.op === 'store' || other.op === 'delete' || other.op === 'complete'
    if (command.op === 'read' && replaces) return { refused: ['not_found'] } // its content is removed while it is read
    // A part may arrive when the parts that form the file are chosen already.
    if (command.op === 'part' && other.op === 'complete' && command.upload === other.upload)
      return { idle: true }
    return {}
  },

  open: openFiles,
}

const demandPath = (path: string): void => {
  if (path.startsWith('/')) refuse('bad_request')
}

/** Puts content at a path, and returns when its file was born. */
const put = (state: FilesState, path: string, content: string): number => {
  const born = state.files[path]?.born ?? (state.births[path] ?? 0) + 1
  state.births[path] = born
  state.files[path] = { content, born }
  return born
}

/** The content of the parts, which are numbered from 1; each but the last is large. */
const assembled = (parts: Record<number, string>): string => {
  const numbers = Object.keys(parts).map(Number)
  const isWhole = numbers.every(
    (number, i) => number === i + 1 && (i === numbers.length - 1 || parts[number] === LARGE),
  )
  if (numbers.length === 0 || !isWhole) refuse('bad_request')
  return Object.values(parts).join('')
}

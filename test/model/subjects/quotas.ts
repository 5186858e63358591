import fc from 'fast-check'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { refuse, type Scenario, type Subject } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'

interface Command {
  readonly op: 'create' | 'delete' | 'begin' | 'abort'
  readonly place: number
}

type Kind = 'projects' | 'uploads'

/** What was created in each place; false after its end. */
type State = Record<Kind, Record<number, boolean>>

/** Numbers of the plan Free (SPEC.md and docs/api.md, Plans). */
const MOST: Readonly<Record<Kind, number>> = { projects: 20, uploads: 10 }
const PLACES = 24

/** The numbers of projects and uploads that a plan allows. */
export const quotas: Subject<State, Command> = {
  name: 'quotas',
  initial: { projects: {}, uploads: {} },

  commands: fc.record({
    op: fc.constantFrom('create', 'create', 'create', 'create', 'delete', 'begin', 'begin', 'abort'),
    place: fc.nat(PLACES - 1),
  }),

  step(state, { op, place }) {
    const kind = op === 'create' || op === 'delete' ? 'projects' : 'uploads'
    const known = state[kind]
    if (op === 'delete' || op === 'abort') {
      if (!known[place]) refuse('not_found')
      known[place] = false
      return
    }
    if (known[place]) return // a repeat
    if (Object.values(known).filter((exists) => exists).length >= MOST[kind]) refuse('quota_exceeded')
    if (known[place] === undefined) known[place] = true
    else if (kind === 'projects') refuse('not_found')
  },

  view: ({ projects, uploads }) => ({ projects: placesIn(projects), uploads: placesIn(uploads) }),
  repeats: () => true,

  excuse: (command, other) =>
    // The reply of a creation is read after it: the project may be deleted by then.
    command.op === 'create' && other.op === 'delete' ? { refused: ['not_found'] } : {},

  open: (world) => open(world),
}

const placesIn = (known: Record<number, boolean>): string[] =>
  Object.keys(known)
    .filter((place) => known[Number(place)])
    .sort()

const open = async (world: World): Promise<Scenario<Command>> => {
  const { env_id } = await world.openEnv('free')
  const ids = new Ids()
  const { cause } = ids.caller(env_id, 'quotas')

  const perform = async (node: ModelNode, { op, place }: Command): Promise<void> => {
    const caller = ids.caller(env_id, String(place))
    switch (op) {
      case 'create':
        await createProject(node, { name: `project-${place}` }, caller)
        return
      case 'delete':
        return deleteProject(node, { project: ids.of(`${place} project`) }, caller)
      case 'begin':
        await beginUpload(node, { path: `file-${place}`, content_type: '', run_id: null }, caller)
        return
      case 'abort':
        return abortUpload(node, { upload_id: ids.of(`${place} upload`) }, cause)
      default:
        return op satisfies never
    }
  }

  const observe = async ({ views }: ModelNode): Promise<unknown> => {
    await views.settled()
    const page = { limit: 100, offset: 0 }
    const projects = (await views.projects.find({ equal: { env_id }, sort: 'order', ...page })).items
    const uploads = (await views.holdings.find({ equal: { env_id, kind: 'parts' }, sort: 'holder', ...page }))
      .items
    const placeOf = (id: string): string => ids.nameOf(id).split(' ')[0] ?? id
    return {
      projects: projects.map(({ project_id }) => placeOf(project_id)).sort(),
      uploads: uploads.map(({ holder }) => placeOf(holder)).sort(),
    }
  }

  return { perform, observe }
}

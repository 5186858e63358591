import type { Doc } from '../../../src/ports/readModels.ts'
import { allProjections } from '../../../src/projections/index.ts'
import type { Projection } from '../../../src/projections/projection.ts'
import { allDocsOf } from '../../support/docsOf.ts'
import type { Records, StoredModel } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'

/** Compares the stored documents of every read model with a fold of the log (I8). */
export const checkModels = ({
  log,
  models,
  quietAt,
}: Pick<Records, 'log' | 'models' | 'quietAt'>): Finding[] =>
  allProjections.flatMap((projection) => {
    const model = models.find(({ name }) => name === projection.name)
    return model ? checkModel(projection, model, { log, quietAt }) : []
  })

const checkModel = (
  projection: Projection,
  { name, docs, checkpoint }: StoredModel,
  { log, quietAt }: Pick<Records, 'log' | 'quietAt'>,
): Finding[] => {
  const upTo = checkpoint > quietAt ? checkpoint : quietAt // a node that stops leaves the last facts to its next start
  const expected = allDocsOf(
    projection,
    log.filter(({ cursor }) => cursor <= upTo),
  ).map(textOf)
  const stored = docs.map(textOf)
  const [wanted, got] = [new Set(expected), new Set(stored)]
  const missing = expected.filter((text) => !got.has(text))
  const wrong = projection.isBrief ? [] : stored.filter((text) => !wanted.has(text))
  if (missing.length === 0 && wrong.length === 0) return []
  return [
    findingOf('stale read', `Read model ${name}: ${missing.length} are missing, ${wrong.length} are stale`, [
      ...missing.slice(0, 5).map((text) => `missing: ${text}`),
      ...wrong.slice(0, 5).map((text) => `stale: ${text}`),
    ]),
  ]
}

/** JSON with sorted keys, because an engine may keep them in another order. */
const textOf = (doc: Doc): string =>
  JSON.stringify(doc, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

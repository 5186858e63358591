import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { Records } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'

type ClientRecords = Pick<
  Records,
  'log' | 'publications' | 'deployed' | 'looks' | 'wrongReplies' | 'files' | 'lists' | 'incidents'
>

/** Compares what clients sent and received with the log (I1, I2). */
export const checkClients = (records: ClientRecords): Finding[] => [
  ...checkPublications(records),
  ...checkDeployed(records),
  ...checkFiles(records),
  ...records.looks
    .filter(({ status }) => status === 404)
    .map(({ event_id }) => findingOf('stale read', `Event ${event_id} was acknowledged, then returned 404`)),
  ...records.wrongReplies.map(({ request, status, text }) =>
    findingOf('wrong reply', `${request} returned ${status}`, [text]),
  ),
  ...records.incidents.map((incident) => findingOf('incident', incident)),
]

const checkPublications = ({ log, publications }: ClientRecords): Finding[] => {
  const findings: Finding[] = []
  const published = log.filter((fact) => isOf(fact, 'EventPublished'))
  const ids = new Set(published.map(({ event }) => event.event_id))
  const byToken = Map.groupBy(published, ({ event }) => tokenOf(event.event_data))
  for (const { token, event_ids } of publications) {
    for (const id of event_ids)
      if (!ids.has(id)) findings.push(findingOf('lost', `Event ${id} was acknowledged and is not in the log`))
    if (new Set(event_ids).size > 1)
      findings.push(findingOf('duplicated', `One request got the events ${event_ids.join(', ')}`))
    const stored = byToken.get(token) ?? []
    if (stored.length > 1)
      findings.push(
        findingOf('duplicated', `The event with token ${token} is stored ${stored.length} times`, stored),
      )
  }
  return findings
}

const tokenOf = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'token' in data ? data.token : undefined

const checkDeployed = ({ log, deployed }: ClientRecords): Finding[] => {
  const facts = Map.groupBy(
    log.filter((fact) => isOf(fact, 'BuildDeployed')),
    ({ event }) => event.build_id,
  )
  return deployed.flatMap((build_id) => {
    const found: readonly Recorded[] = facts.get(build_id) ?? []
    if (found.length === 1) return []
    const rule = found.length === 0 ? 'lost' : 'duplicated'
    return [findingOf(rule, `The deployment of build ${build_id} is stored ${found.length} times`, found)]
  })
}

/** The content of a file is that of its last acknowledged version, or of a later one without a reply. */
const checkFiles = ({ log, files, lists }: ClientRecords): Finding[] => {
  const findings: Finding[] = []
  const stored = Map.groupBy(
    log.filter((fact) => isOf(fact, 'FileStored')),
    ({ event }) => event.path,
  )
  const listed = lists && new Map(lists.files.map(({ path, etag }) => [path, etag]))
  for (const [path, versions] of Map.groupBy(files, (file) => file.path)) {
    const facts = stored.get(path) ?? []
    const etags = new Set(facts.map(({ event }) => event.etag))
    const last = versions.findLastIndex(({ acknowledged }) => acknowledged)
    for (const { etag, acknowledged } of versions)
      if (acknowledged && !etags.has(etag))
        findings.push(
          findingOf('lost', `File ${path} with ${etag} was acknowledged and is not in the log`, facts),
        )
    if (!listed) continue
    const current = listed.get(path)
    if (last >= 0 && !versions.slice(last).some(({ etag }) => etag === current))
      findings.push(
        findingOf('stale read', `File ${path} has ${current}, not ${versions[last]?.etag}`, facts),
      )
  }
  return findings
}

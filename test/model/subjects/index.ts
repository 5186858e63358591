import type { Subject } from '../subject.ts'
import { busyStream } from './busyStream.ts'
import { context } from './context.ts'
import { credentials } from './credentials.ts'
import { domains } from './domains.ts'
import { files } from './files.ts'
import { orgs } from './orgs.ts'
import { projects } from './projects.ts'
import { quotas } from './quotas.ts'
import { requests } from './requests.ts'
import { runs } from './runs.ts'

/** Calls back with each subject: their types of states and commands differ. */
export const everySubject = <T>(each: <State, Command>(subject: Subject<State, Command>) => T): T[] => [
  each(runs),
  each(projects),
  each(context),
  each(files),
  each(credentials),
  each(domains),
  each(orgs),
  each(requests),
  each(busyStream),
  each(quotas),
]

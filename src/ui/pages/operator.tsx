import type { ComponentType } from 'preact'
import { linkTo, param } from '../frame/router.ts'
import { InstallationAudit } from './operator/installationAudit.tsx'
import { Defects } from './operator/defects.tsx'
import { Node } from './operator/node.tsx'
import { Organizations } from './operator/organizations.tsx'
import { ReadModels } from './operator/readModels.tsx'

const SECTIONS: Readonly<Record<string, readonly [name: string, content: ComponentType]>> = {
  organizations: ['Organizations', Organizations],
  node: ['Node', Node],
  'read-models': ['Read models', ReadModels],
  defects: ['Defects', Defects],
  audit: ['Audit of the installation', InstallationAudit],
}

/** The installation, for its operator: a section in the URL. */
export const Operator = () => {
  const chosen = Object.hasOwn(SECTIONS, param('section')) ? param('section') : 'organizations'
  const Content = SECTIONS[chosen]?.[1] ?? Organizations
  return (
    <>
      <h1>Operator</h1>
      <div class="sections" role="navigation" aria-label="Sections">
        {Object.entries(SECTIONS).map(([section, [name]]) => (
          <a
            key={section}
            href={linkTo('/operator', { section })}
            aria-current={section === chosen ? 'page' : undefined}
          >
            {name}
          </a>
        ))}
      </div>
      <Content />
    </>
  )
}

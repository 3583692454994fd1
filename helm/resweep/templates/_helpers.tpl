{{- define "resweep.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
The name of every object, at most 49 characters so that a suffix still fits into 63. A longer one is cut and
given a hash of the whole: two releases that begin alike stay apart.
*/}}
{{- define "resweep.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- if gt (len $full) 49 -}}
{{- printf "%s-%s" ($full | trunc 40 | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- else -}}
{{- trimSuffix "-" $full -}}
{{- end -}}
{{- end -}}

{{- define "resweep.selectorLabels" -}}
app.kubernetes.io/name: {{ include "resweep.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of an object: the user's own never replace those that selectors look for. */}}
{{- define "resweep.labels" -}}
{{- $own := include "resweep.selectorLabels" .root | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" (.root.Chart.AppVersion | toString) -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- toYaml (mergeOverwrite (deepCopy .root.Values.commonLabels) (deepCopy (default (dict) .extra)) $own) -}}
{{- end -}}

{{- define "resweep.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "resweep.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "resweep.tokenSecret" -}}
{{- default (printf "%s-token" (include "resweep.fullname" .)) .Values.token.existingSecret -}}
{{- end -}}

{{- define "resweep.tokenKey" -}}
{{- ternary .Values.token.existingSecretKey "token" (ne .Values.token.existingSecret "") -}}
{{- end -}}

{{- define "resweep.databaseSecret" -}}
{{- default (printf "%s-database" (include "resweep.fullname" .)) .Values.database.existingSecret -}}
{{- end -}}

{{/* "true" where the store is an external PostgreSQL, else empty. */}}
{{- define "resweep.external" -}}
{{- if or .Values.database.existingSecret .Values.database.url -}}true{{- end -}}
{{- end -}}

{{/*
New pods may start beside the old ones only where nothing is shared but a database: a second pod would wait for a
ReadWriteOnce volume for ever, and two SQLite files would be two truths.
*/}}
{{- define "resweep.rolling" -}}
{{- if and (include "resweep.external" .) (not .Values.persistence.enabled) -}}true{{- end -}}
{{- end -}}

{{/* Refuse what cannot work, with both values and the way out. */}}
{{- define "resweep.check" -}}
{{- $several := "For several agents set database.existingSecret to a Secret with a PostgreSQL URL and persistence.enabled to false; else set replicas to 1." -}}
{{- if and (gt (int .Values.replicas) 1) .Values.persistence.enabled -}}
{{- fail (printf "replicas is %d and persistence.accessModes is %s with persistence.enabled: one volume serves one agent, in any access mode, since two agents cannot share its SQLite file. %s" (int .Values.replicas) (toJson .Values.persistence.accessModes) $several) -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "resweep.external" .)) -}}
{{- fail (printf "replicas is %d and database.existingSecret is %q: without a shared database every agent would keep its own store. %s" (int .Values.replicas) .Values.database.existingSecret $several) -}}
{{- end -}}
{{- if and .Values.database.existingSecret .Values.database.url -}}
{{- fail (printf "database.existingSecret is %q and database.url is set too: give one of them." .Values.database.existingSecret) -}}
{{- end -}}
{{- if and .Values.token.existingSecret .Values.token.value -}}
{{- fail (printf "token.existingSecret is %q and token.value is set too: give one of them." .Values.token.existingSecret) -}}
{{- end -}}
{{- range $at := list "agent.token" "record.token" "record.salt" "webhook.secret" "webhook.token" "web.viewer_token" "web.reviewer_token" -}}
{{- $part := splitList "." $at -}}
{{- if hasKey (default (dict) (get $.Values.settings (first $part))) (last $part) -}}
{{- fail (printf "settings.%s is set: a ConfigMap is no place for a secret. Give it as RESWEEP_%s in extraEnv, from a Secret%s." $at ($at | trimPrefix "agent." | replace "." "_" | upper) (ternary ", or as token.existingSecret" "" (eq $at "agent.token"))) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "listen" "home" "spool_dir" "store" "standby" -}}
{{- if hasKey (default (dict) $.Values.settings.agent) $name -}}
{{- fail (printf "settings.agent.%s is set: the chart sets it itself (see service, persistence, database and replicas)." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

"""Models of scikit-learn from fixed seeds: forests, boosting, clusters, text, a search.

Prints a hash of what each model says; numbers to six digits, since threads add in any order.
"""

from __future__ import annotations

import hashlib

import numpy as np
from sklearn.cluster import DBSCAN, KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs, make_classification, make_regression
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

WORDS = ("block", "cache", "slab", "shard", "map", "leaf", "run", "class", "page", "bit", "word")


def show(name: str, values: object) -> None:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        array = np.round(array / (np.abs(array).max() or 1), 6) + 0.0
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    print(name, array.shape, digest)


def forests() -> None:
    rows, classes = make_classification(
        6000, 30, n_informative=12, n_classes=4, flip_y=0.05, random_state=1
    )
    parts = train_test_split(rows, classes, test_size=0.3, random_state=2)
    train, test, train_classes, test_classes = parts
    forest = RandomForestClassifier(n_estimators=30, n_jobs=2, random_state=3)
    forest.fit(train, train_classes)
    show("forest", forest.predict(test))
    show("importances", forest.feature_importances_)
    print("accuracy", round(accuracy_score(test_classes, forest.predict(test)), 6))
    boosted = HistGradientBoostingClassifier(max_iter=20, random_state=4)
    show("boosted", boosted.fit(train, train_classes).predict(test))
    near = KNeighborsClassifier(n_neighbors=7, n_jobs=2).fit(train, train_classes)
    show("neighbours", near.predict(test))
    vectors = make_pipeline(StandardScaler(), SVC(C=3.0, random_state=5))
    show("vectors", vectors.fit(train[:2500], train_classes[:2500]).predict(test))
    odd = IsolationForest(n_estimators=30, n_jobs=2, random_state=6).fit(train)
    show("odd ones", odd.predict(test))


def numbers() -> None:
    rows, values = make_regression(5000, 40, n_informative=20, noise=3.0, random_state=7)
    forest = RandomForestRegressor(n_estimators=25, n_jobs=2, random_state=8)
    forest.fit(rows[:4000], values[:4000])
    show("regression", forest.predict(rows[4000:]))
    show("ridge", Ridge(alpha=0.5).fit(rows, values).coef_)
    show("components", np.abs(PCA(n_components=8, random_state=9).fit_transform(rows)))


def clusters() -> None:
    points, _ = make_blobs(15_000, 8, centers=12, cluster_std=1.5, random_state=10)
    found = KMeans(n_clusters=12, n_init=4, random_state=11).fit(points)
    show("k-means", found.labels_)
    show("centres", found.cluster_centers_)
    batches = MiniBatchKMeans(n_clusters=12, n_init=3, batch_size=2048, random_state=12)
    batches.fit(points)
    show("batches", batches.labels_)
    show("density", DBSCAN(eps=2.2, min_samples=8, n_jobs=2).fit(points[:4000]).labels_)


def texts() -> None:
    rng = np.random.default_rng(13)
    drawn = rng.integers(0, len(WORDS), (6000, 14))
    lines = [" ".join(f"{WORDS[w]}{w * n % 97}" for w in row) for n, row in enumerate(drawn)]
    classes = (drawn[:, 0] + drawn[:, 1]) % 3
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
    table = words.fit_transform(lines)
    print("words", table.shape, table.nnz)
    show("bayes", MultinomialNB().fit(table, classes).predict(table))
    topics = TruncatedSVD(n_components=6, random_state=14).fit(table)
    show("topics", np.abs(topics.singular_values_))


def search() -> None:
    """The best settings, sought by two processes."""
    rows, classes = make_classification(1500, 20, n_informative=10, random_state=15)
    grid = {"C": [0.01, 0.1, 1.0, 10.0]}
    sought = GridSearchCV(LogisticRegression(max_iter=500), grid, cv=5, n_jobs=2)
    sought.fit(rows, classes)
    print("best", sought.best_params_, round(float(sought.best_score_), 6))


def main() -> None:
    forests()
    numbers()
    clusters()
    texts()
    search()


main()

"""Learning: scikit-learn estimators (extra `learn`), the tables of the papers, and the trainers of `netdp.simulate`."""

from netdp.exports import exports

__getattr__, __dir__ = exports(
    __name__,
    {
        "netdp.families.masked.training": "TrainingPlan plan_training",
        "netdp.families.token.training": "WalkTrained replaced_tokens train_ring train_walk train_walks",
        "netdp.learn.classifiers": "GossipLogisticRegression WalkLogisticRegression",
        "netdp.learn.planning": "LearningPlan NoiseWarning plan_learning",
        "netdp.learn.poisoning": "Attacked attacked combine poisoned",
        "netdp.learn.regressions": "LinearRegression LogisticRegression",
        "netdp.learn.scaling": "PreprocessingWarning",
        "netdp.learn.tables": "LABELS DataTable table",
        "netdp.models.files": "TrainedModel load_model",
        "netdp.models.parties": "Landscape LogisticParties ModelParties accuracy objective",
        "netdp.protocols.risk": "ExcessRisk influence",
        "netdp.protocols.training": "FromGradients Losses Trained train",
    },
    renamed={"Table": "DataTable"},
)
